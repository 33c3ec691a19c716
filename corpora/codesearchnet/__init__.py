"""CodeSearchNet (Husain et al. 2019): its corpus read and made from repositories, and its Challenge."""
